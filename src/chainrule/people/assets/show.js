(function(){var D=__DATA__,now=null;function el(t,s){var e=document.createElement(t);if(s!==undefined)e.textContent=s;return e}
function go(id){if(now)document.getElementById(now).hidden=true;now=id;var v=document.getElementById(id);v.hidden=false;
var stage=document.getElementById('stage');stage.scrollTop=0;var g=v.querySelector('g'),r=g?g.getBoundingClientRect():null;if(r)stage.scrollLeft+=r.left+r.width/2-stage.getBoundingClientRect().left-stage.clientWidth/2;
var c=document.getElementById('crumbs');c.textContent='';var path=[];for(var k=id;k;k=D.crumbs[k][1])path.unshift(k);
path.forEach(function(k,i){if(i)c.appendChild(el('span',' \u203a '));var b=el('button',D.crumbs[k][0]);b.type='button';b.onclick=function(){go(k)};c.appendChild(b)});
document.querySelectorAll('[data-tab]').forEach(function(b){b.setAttribute('aria-pressed',b.dataset.tab[0]===id[0])})}
function tell(key){var d=D.details[key],box=document.getElementById('details');box.textContent='';if(!d)return;box.appendChild(el('h2',d.name));if(d.doc)box.appendChild(el('p',d.doc));
var t=el('table');d.rows.forEach(function(r){var tr=el('tr');tr.appendChild(el('td',r[0]));tr.appendChild(el('td',r[1]));t.appendChild(tr)});box.appendChild(t);
var p=el('p',d.line);p.className='dim';p.style.overflowWrap='anywhere';box.appendChild(p);box.appendChild(el('pre',d.code))}
document.querySelectorAll('#stage g[data-i]').forEach(function(g){g.addEventListener('click',function(){document.querySelectorAll('g.on').forEach(function(o){o.classList.remove('on')});
g.classList.add('on');tell(g.dataset.i);if(g.dataset.view)go(g.dataset.view)})});
document.querySelectorAll('[data-tab]').forEach(function(b){b.onclick=function(){go(b.dataset.tab);var o=document.querySelector('g.on');if(o)o.classList.remove('on');document.getElementById('details').replaceChildren(el('p','Click a box.'))}});go('f0')})();
